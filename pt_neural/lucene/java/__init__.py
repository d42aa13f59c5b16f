"""Java in this process: the virtual machine, and small programs run inside it."""
