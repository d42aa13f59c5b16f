"""``python -m pt_neural`` is ``pt-neural``."""

from pt_neural.command_line.commands import main

main(prog_name="pt-neural")
