"""The imperative shell: gather, act, the control loop, wiring."""
