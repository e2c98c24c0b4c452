"""Documents of the state of the fleet: status, history, explanation."""
