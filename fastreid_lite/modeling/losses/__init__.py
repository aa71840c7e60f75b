"""What a training step makes smaller; one idea a file, each a pure function and an entry of the registry."""
