// What a handler can call and return. Nothing here needs WebAssembly, so handlers can be tested natively.
#ifndef JOBQ_H
#define JOBQ_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOBQ_PRINTF(text, first) __attribute__((format(printf, text, first)))

// One attempt of a job. The strings end with NUL and are valid during the attempt.
struct jobq_job {
    const char *id;       // the same in every attempt; use it as an idempotency key
    const char *job_type;
    const char *payload;  // JSON text
    unsigned attempt;     // the first is 1
    unsigned max_attempts;
};

enum jobq_answer_kind { JOBQ_DONE, JOBQ_RETRY, JOBQ_RETRY_AFTER, JOBQ_FATAL, JOBQ_SNOOZE };

// What happens to the job. Made by one of the functions below.
struct jobq_answer {
    enum jobq_answer_kind kind;
    char *text;         // the result or the message, from malloc; NULL for JOBQ_SNOOZE
    uint64_t after_ms;  // for JOBQ_RETRY_AFTER and JOBQ_SNOOZE
};

// Implemented in handler.c.
struct jobq_answer handle(const struct jobq_job *job);

// The job is completed, with this JSON text as its result.
struct jobq_answer jobq_done(const char *format, ...) JOBQ_PRINTF(1, 2);
// The attempt fails, and the job runs again after the backoff of its type.
struct jobq_answer jobq_retry(const char *format, ...) JOBQ_PRINTF(1, 2);
// The attempt fails, and the job runs again after this delay.
struct jobq_answer jobq_retry_after(uint64_t after_ms, const char *format, ...) JOBQ_PRINTF(2, 3);
// The job is dead at once.
struct jobq_answer jobq_fatal(const char *format, ...) JOBQ_PRINTF(1, 2);
// Not a failure: the job runs again after this delay, and the attempt isn't counted.
struct jobq_answer jobq_snooze(uint64_t after_ms);

enum jobq_level { JOBQ_DEBUG, JOBQ_INFO, JOBQ_WARN, JOBQ_ERROR };

// Writes a log line; `jobq logs ID` shows it.
void jobq_log(enum jobq_level level, const char *format, ...) JOBQ_PRINTF(2, 3);
// The time left before the host stops this attempt, in milliseconds.
uint64_t jobq_remaining_ms(void);
// Whether this job was cancelled.
bool jobq_is_cancelled(void);
// Reports the progress: a percentage from 0 to 100 and a short message.
void jobq_progress(uint8_t percent, const char *message);

// A follow-up job. Fields that are zero take the defaults of its type.
struct jobq_new_job {
    const char *job_type;
    const char *payload;  // JSON text
    const int32_t *priority;
    uint64_t delay_ms;
    uint32_t max_attempts;
    const char *unique_key;  // at most one unfinished job may have this key
};

// Enqueues a job when this attempt completes; if it doesn't, nothing is enqueued. Returns the id and sets *error to NULL,
// or returns NULL and sets *error to the reason. The caller frees either string.
char *jobq_enqueue(const struct jobq_new_job *job, char **error);

// Formats a string. The caller frees it.
char *jobq_format(const char *format, va_list args);

enum json_found { JSON_OK, JSON_ABSENT, JSON_BAD };

// Reads the member `key` of the JSON object `text`. Sets *value only for JSON_OK.
// JSON_BAD: the member has another type or doesn't fit, or the text isn't a JSON object.
enum json_found json_integer(const char *text, const char *key, int64_t *value);
enum json_found json_string(const char *text, const char *key, char *value, size_t size);

#endif
