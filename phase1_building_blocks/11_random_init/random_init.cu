/* random_init.cu - random numbers as a function of their index, and the initialisation of networks.
 *
 *     bazel run //phase1_building_blocks:random_init
 *
 * A classical random number generator has a state and computes each number from the one before: threads would have to
 * wait for one another. Philox has no state. It is a cipher with ten rounds: number i is the counter i, encrypted under
 * the key `seed`. Every thread computes its own numbers, the CPU computes the same ones, and a test can check each of
 * them bit for bit.
 *
 * The initial weights of a network must be random, or all its neurons would learn the same; and they must have the
 * right size, because every layer multiplies the signal by them. Before the versions are measured, the program encrypts
 * the examples that the cipher's authors published, and sends a signal through ten layers with weights of three
 * sizes. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/11_random_init/random_init_curand.cuh"
#include "phase1_building_blocks/11_random_init/random_init_lesson.cuh"

/* Counters, keys and results from the vectors that the paper's authors publish with their library Random123. */
static void show_published_vectors(void) {
  static const struct {
    PhiloxBlock counter;
    uint32_t key0, key1;
    PhiloxBlock result;
  } vectors[] = {
      {{{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, /* pi */
       0xa4093822,
       0x299f31d0,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  fprintf(stderr, "Philox4x32-10: counter, key -> four words, as published?\n");
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
    const uint32_t *c = vectors[i].counter.word;
    PhiloxBlock block = philox_rounds(vectors[i].counter, vectors[i].key0, vectors[i].key1);
    int same = memcmp(&block, &vectors[i].result, sizeof block) == 0;
    fprintf(stderr, "  %08x %08x %08x %08x, %08x %08x -> %08x %08x %08x %08x  %s\n", c[0], c[1], c[2], c[3],
            vectors[i].key0, vectors[i].key1, block.word[0], block.word[1], block.word[2], block.word[3],
            same ? "yes" : "NO");
    if (!same) die("this is not Philox: philox_rounds() in common/philox.h is broken");
  }
}

enum { LAYERS = 10, WIDTH = 256 };

/* Root mean square of what comes out of each of LAYERS layers relu(w x), from a standard normal x. */
static void show_signal(const char *name, float stddev) {
  static float w[WIDTH * WIDTH], x[WIDTH], y[WIDTH];
  random_normal_fill(x, WIDTH, 0, 1, 1, 0);
  fprintf(stderr, "  %-28s", name);
  for (int layer = 1; layer <= LAYERS; layer++) {
    double squares = 0;
    random_normal_fill(w, WIDTH * WIDTH, 0, stddev, 1, (uint32_t)layer);
    for (int o = 0; o < WIDTH; o++) {
      y[o] = 0;
      for (int i = 0; i < WIDTH; i++) y[o] += w[o * WIDTH + i] * x[i];
      y[o] = fmaxf(y[o], 0);
      squares += (double)y[o] * y[o];
    }
    memcpy(x, y, sizeof x);
    if (layer == 1 || layer == 4 || layer == 7 || layer == LAYERS) fprintf(stderr, " %9.2g", sqrt(squares / WIDTH));
  }
  fputc('\n', stderr);
}

static void show_initialisation(void) {
  show_published_vectors();
  fprintf(stderr, "A signal after layer 1, 4, 7 and 10, %d ReLUs wide (root mean square, 1 at the start):\n", WIDTH);
  show_signal("deviation 0.01", 0.01f);
  show_signal("Xavier, sqrt(2 / (in + out))", sqrtf(2.0f / (WIDTH + WIDTH)));
  show_signal("He, sqrt(2 / in)", sqrtf(2.0f / WIDTH));
}

int main(int argc, char **argv) {
  Lesson uniform = random_uniform_lesson(), normal = random_normal_lesson();
  uniform.before = show_initialisation;
  const LessonVersion memory = lesson_peer_version(
      random_version("device memset", random_memset, "Only writes, without computing: an upper bound."));
  const LessonVersion uniform_versions[] = {
      random_version("one_each", random_uniform_one_each,
                     "Ten rounds of the cipher give four words, and each thread uses one. Use all four."),
      random_version(
          "four_each", random_uniform_four_each,
          "A quarter of the cipher calls. But each of a thread's four stores touches 16 sectors: store once."),
      random_version("float4", random_uniform_float4,
                     "One store of 16 bytes. Keys and addresses are computed for each: use a grid-stride loop."),
      random_version("uniform", random_uniform_fill_gpu,
                     "Any grid gives the same numbers. Computing them takes little more time than writing them."),
      lesson_library_version(random_version("cuRAND device API", random_uniform_curand_device,
                                            "The same numbers: each thread sets up a state and uses it once.")),
      memory,
      lesson_peer_version(random_version("cuRAND uniform", random_uniform_curand,
                                         "The vendor's host API: the same cipher, in another order.")),
  };
  const LessonVersion normal_versions[] = {
      random_version("double", random_normal_quads_double,
                     "As exact as the CPU: log, sqrt, sin, cos in double, for results of 24 bits. Use float."),
      random_version("float", random_normal_quads_float,
                     "The same numbers except for the last bits. Keys and addresses are computed for each."),
      random_version("normal", random_normal_quads_gpu,
                     "The arithmetic is the limit: logarithm, root, sine and cosine to the last bits."),
      memory,
      lesson_peer_version(random_version("cuRAND normal", random_normal_curand,
                                         "The vendor's: the same number of words, a faster and less exact sine.")),
  };
  const LessonTable tables[] = {
      {"Uniform random numbers", uniform_versions, sizeof uniform_versions / sizeof *uniform_versions},
      {"Normal random numbers", normal_versions, sizeof normal_versions / sizeof *normal_versions, &normal},
  };
  return lesson_main(argc, argv, &uniform, tables, 2);
}
