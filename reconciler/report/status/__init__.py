"""The state of the fleet as text and documents."""
