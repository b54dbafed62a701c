"""What memory does not believe: it holds back texts that steer a model, and writes over secrets."""
