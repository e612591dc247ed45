#error \
    "cublas.h, the API of before 2010, is not emulated: include cublas_v2.h, create a handle, and pass it to each call"
