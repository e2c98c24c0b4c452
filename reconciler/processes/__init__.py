"""Foreign programs: arguments, environment, limits of time, memory and output, process group."""
