// What a handler is given and what it may answer. Nothing here needs WebAssembly, so handlers can be tested natively.
#ifndef JOBQ_H
#define JOBQ_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOBQ_PRINTF(text, first) __attribute__((format(printf, text, first)))

// One attempt of one job. The texts end with NUL and live as long as the attempt.
struct jobq_job {
    const char *id;       // the same in every attempt, so it can serve as an idempotency key
    const char *job_type;
    const char *payload;  // JSON text
    unsigned attempt;     // the first is 1
    unsigned max_attempts;
};

enum jobq_answer_kind { JOBQ_DONE, JOBQ_RETRY, JOBQ_RETRY_AFTER, JOBQ_FATAL, JOBQ_SNOOZE };

// What becomes of the job. Made by one of the functions below.
struct jobq_answer {
    enum jobq_answer_kind kind;
    char *text;         // the result or the message, from malloc; NULL for JOBQ_SNOOZE
    uint64_t after_ms;  // for JOBQ_RETRY_AFTER and JOBQ_SNOOZE
};

// Yours: handler.c.
struct jobq_answer handle(const struct jobq_job *job);

// Completed, with this JSON text as its result.
struct jobq_answer jobq_done(const char *format, ...) JOBQ_PRINTF(1, 2);
// Failed: another attempt after the backoff of the job type.
struct jobq_answer jobq_retry(const char *format, ...) JOBQ_PRINTF(1, 2);
// Failed: another attempt after this delay.
struct jobq_answer jobq_retry_after(uint64_t after_ms, const char *format, ...) JOBQ_PRINTF(2, 3);
// Failed for good: the job is dead at once.
struct jobq_answer jobq_fatal(const char *format, ...) JOBQ_PRINTF(1, 2);
// Not failed, not yet: runs again after this delay. Not counted as an attempt.
struct jobq_answer jobq_snooze(uint64_t after_ms);

enum jobq_level { JOBQ_DEBUG, JOBQ_INFO, JOBQ_WARN, JOBQ_ERROR };

// A line that `jobq logs ID` shows.
void jobq_log(enum jobq_level level, const char *format, ...) JOBQ_PRINTF(2, 3);
// Milliseconds left before this attempt is stopped.
uint64_t jobq_remaining_ms(void);
// Whether somebody asked for this job to be cancelled.
bool jobq_is_cancelled(void);
// Shows how far the attempt has come: 0 to 100 and a few words.
void jobq_progress(uint8_t percent, const char *message);

// A follow-up job. Leave zero what should be as the job type says.
struct jobq_new_job {
    const char *job_type;
    const char *payload;  // JSON text
    const int32_t *priority;
    uint64_t delay_ms;
    uint32_t max_attempts;
    const char *unique_key;  // at most one unfinished job holds it
};

// Adds a job that comes into being when this attempt completes, or not at all. Returns its id and sets *error to NULL,
// or returns NULL and sets *error to the reason. Either text is from malloc.
char *jobq_enqueue(const struct jobq_new_job *job, char **error);

// The text of a format, from malloc.
char *jobq_format(const char *format, va_list args);

enum json_found { JSON_OK, JSON_ABSENT, JSON_BAD };

// The member `key` of the JSON object `text`. *value is only set for JSON_OK.
// JSON_BAD: it is not of this type, does not fit, or the text is no JSON object.
enum json_found json_integer(const char *text, const char *key, int64_t *value);
enum json_found json_string(const char *text, const char *key, char *value, size_t size);

#endif
