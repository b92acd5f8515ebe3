"""Times and memory of this book's functions beside those of other packages."""
