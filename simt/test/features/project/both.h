return a + b; /* the body of a function in sums.cu, as learn/ has them: it is that function's device code */
