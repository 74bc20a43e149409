/* Faults that the sanitizers have to report before silence means anything. */
#include <stdlib.h>

static volatile int three = 3;
static volatile double large = 1e300;

int overrun(void) { /* AddressSanitizer */
  int *block = malloc(three * sizeof *block);
  block[0] = 0;
  int beyond = block[three];
  free(block);
  return beyond;
}

int overflow(void) { return (int)large; } /* UndefinedBehaviorSanitizer */

int race(void) { /* ThreadSanitizer */
  int sum = 0;
#pragma omp parallel for num_threads(3)
  for (int i = 0; i < 10000; i++) sum += i;
  return sum;
}
