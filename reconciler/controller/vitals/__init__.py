"""Values that pages, metrics and logs show: phase, problems, vital signs, the journal as documents."""
