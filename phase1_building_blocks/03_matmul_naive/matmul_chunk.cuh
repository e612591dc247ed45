/* matmul_chunk.cuh - why the sums of a matrix product are taken in chunks.
 *
 * Adding a product to a sum rounds the sum; the rounding error is a fraction of the sum so far. One sum over K products
 * collects K such errors, and they grow with the sum: their root mean square grows as K. If every MATMUL_CHUNK products
 * have a sum of their own, and these sums are then added up, it grows as sqrt(K * MATMUL_CHUNK): 3.3 times less at
 * K = 4096. (Higham, "The accuracy of floating point summation", 1993: blocked summation.) A kernel that has no
 * registers left for a second set of sums adds each chunk to C, or keeps the totals in shared memory.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_CHUNK_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_CHUNK_CUH

enum { MATMUL_CHUNK = 384 }; /* products; a multiple of what the kernels do in a step */

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_CHUNK_CUH */
