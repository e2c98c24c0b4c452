"""Events of rounds: person, change, time and reason, each once."""
