"""Names of the environment variables that this package reads."""

HEAP_VARIABLE = "PT_NEURAL_JAVA_HEAP"  # the largest heap of Java, as Java writes it
PROCESSORS_VARIABLE = "PT_NEURAL_JAVA_PROCESSORS"  # of Java; set for workers, several of which share a machine
