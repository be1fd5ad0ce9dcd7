"""What is learned: networks that move a state forward in time, and the loop that trains them."""
