"""A deployment as its operator reaches it: AWS resources of its CloudFormation stack, and its usage logs."""
