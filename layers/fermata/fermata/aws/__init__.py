"""The only room that knows we live on AWS."""
