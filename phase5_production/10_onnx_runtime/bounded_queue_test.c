/* bounded_queue.h: order, limits, and that nobody waits for ever. */
#include "phase5_production/10_onnx_runtime/bounded_queue.h"

#include "common/test.h"

enum { ITEMS = 2000, PRODUCERS = 5 };

static int numbers[ITEMS];

static void *put_all(void *queue) {
  BoundedQueue *q = (BoundedQueue *)queue;
  for (int i = 0; i < ITEMS; i++)
    if (queue_put(q, &numbers[i]) != 0) return q;
  queue_close(q);
  return NULL;
}

static void entries_come_in_their_order(void **state) {
  (void)state;
  BoundedQueue q;
  pthread_t thread;
  int next = 0;
  queue_open(&q, 3);
  assert_int_equal(pthread_create(&thread, NULL, put_all, &q), 0);
  for (void *entry; (entry = queue_take(&q)) != NULL; next++) assert_ptr_equal(entry, &numbers[next]);
  assert_int_equal(next, ITEMS);
  pthread_join(thread, NULL);
  assert_null(queue_take(&q));
  queue_destroy(&q);
}

static int queue_length(BoundedQueue *q) {
  pthread_mutex_lock(&q->lock);
  const int count = q->count;
  pthread_mutex_unlock(&q->lock);
  return count;
}

/* Who puts into a full queue waits, and is woken by its end. */
static void a_closed_queue_takes_no_more(void **state) {
  (void)state;
  BoundedQueue q;
  pthread_t thread;
  void *result = NULL;
  queue_open(&q, 2);
  assert_int_equal(pthread_create(&thread, NULL, put_all, &q), 0);
  for (int i = 0; i < 1000 && queue_length(&q) < 2; i++) usleep(1000);
  queue_close(&q);
  pthread_join(thread, &result);
  assert_ptr_equal(result, &q);
  assert_int_equal(queue_put(&q, &numbers[0]), -1);
  assert_ptr_equal(queue_take(&q), &numbers[0]); /* what was in it is still taken */
  assert_ptr_equal(queue_take(&q), &numbers[1]);
  assert_null(queue_take(&q));
  queue_destroy(&q);
}

typedef struct Work {
  OrderedWindow window;
  long place[7];
  int most, open; /* places in use: at most, now */
  pthread_mutex_t lock;
} Work;

static void *produce(void *argument) {
  Work *w = (Work *)argument;
  for (long i; (i = window_begin(&w->window)) >= 0;) {
    pthread_mutex_lock(&w->lock);
    w->open++;
    w->most = w->open > w->most ? w->open : w->most;
    pthread_mutex_unlock(&w->lock);
    if (i % 37 == 0) usleep(300); /* others overtake */
    w->place[i % 7] = i * i;
    window_ready(&w->window, i);
  }
  window_leave(&w->window);
  return NULL;
}

/* Takes until the end, or stops at an item; returns how many came. */
static long consume(Work *w, long stop_at) {
  pthread_t thread[PRODUCERS];
  long count = 0;
  memset(w, 0, sizeof *w);
  pthread_mutex_init(&w->lock, NULL);
  window_open(&w->window, ITEMS, 7, PRODUCERS);
  for (int i = 0; i < PRODUCERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, produce, w), 0);
  for (long i; (i = window_take(&w->window)) >= 0; count++) {
    assert_int_equal(i, count);
    assert_int_equal(w->place[i % 7], i * i);
    if (i == stop_at) window_stop(&w->window);
    pthread_mutex_lock(&w->lock);
    w->open--;
    pthread_mutex_unlock(&w->lock);
    window_release(&w->window);
  }
  for (int i = 0; i < PRODUCERS; i++) pthread_join(thread[i], NULL);
  window_close(&w->window);
  return count;
}

static void items_come_in_their_order_whoever_made_them(void **state) {
  (void)state;
  static Work w;
  assert_int_equal(consume(&w, -1), ITEMS);
  assert_true(w.most >= 2 && w.most <= 7);
}

/* What is begun still comes. */
static void a_stopped_window_begins_no_more(void **state) {
  (void)state;
  static Work w;
  const long count = consume(&w, 100);
  assert_true(count >= 101 && count <= 101 + 7);
}

static void no_items_are_no_wait(void **state) {
  (void)state;
  OrderedWindow w;
  window_open(&w, 0, 4, 1);
  assert_int_equal(window_begin(&w), -1);
  assert_int_equal(window_take(&w), -1);
  window_close(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entries_come_in_their_order), cmocka_unit_test(a_closed_queue_takes_no_more),
      cmocka_unit_test(items_come_in_their_order_whoever_made_them), cmocka_unit_test(a_stopped_window_begins_no_more),
      cmocka_unit_test(no_items_are_no_wait)};
  return TEST_MAIN("bounded_queue", tests);
}
