"""``python -m pt_neural`` is ``pt-neural``."""

from pt_neural.command_line.commands import main

if __name__ == "__main__":
    main(prog_name="pt-neural")
