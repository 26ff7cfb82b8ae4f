"""What the model may ask for, who answers it, and the pipeline in between."""
