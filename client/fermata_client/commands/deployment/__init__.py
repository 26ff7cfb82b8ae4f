"""An operator's commands: they work on the AWS account and resources of a deployment."""
