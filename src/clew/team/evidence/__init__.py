"""Evidence for completed work: checks that leave receipts, and the gate that accepts a claim only with them."""
