"""Facts on a project from its own files: manifests, tools, people, style, components, dependencies, design tokens."""
