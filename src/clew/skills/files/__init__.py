"""Files as they are read: a tree, one markdown file, its front matter and its links, and changes of them."""
