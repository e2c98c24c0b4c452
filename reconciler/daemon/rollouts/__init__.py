"""Rollouts at work: read older revisions, evaluate gates, and record each beginning before its writes."""
