// The #include stands in a header of the program's: that line is named. See library_in_header.cuh.
#include "library_in_header.cuh"

int main() { return sorted(0); }
