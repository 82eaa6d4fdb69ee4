"""Worker processes on a real cluster: the program that they run, and the hand that ends them."""
