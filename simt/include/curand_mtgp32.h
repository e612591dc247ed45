#error "the MTGP32 generator's device API is not emulated: use curandStatePhilox4_32_10_t or curandStateXORWOW_t"
