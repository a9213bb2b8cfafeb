// The handler of the job type `__name__`: doubles a number. Edit this file. jobq/jobq.h has what it can call and return.

#include "jobq/jobq.h"

#include <inttypes.h>
#include <string.h>

// The largest number that is accepted.
#define MAX_N 1000000

struct payload {
    int64_t n;
    // The state of the service that does the doubling: "up", "down", "busy" or "closed".
    char service[16];
};

// Reads a payload such as {"n": 2, "service": "up"}. `service` defaults to "up". Returns an error message, or NULL.
static const char *read_payload(const char *text, struct payload *payload) {
    strcpy(payload->service, "up");
    if (json_integer(text, "n", &payload->n) != JSON_OK)
        return "`n` is not an integer";
    if (json_string(text, "service", payload->service, sizeof payload->service) == JSON_BAD)
        return "`service` is not a string of at most 15 bytes";
    return NULL;
}

struct jobq_answer handle(const struct jobq_job *job) {
    struct payload payload;
    const char *problem = read_payload(job->payload, &payload);

    // Another attempt wouldn't help: the job is dead at once.
    if (problem)
        return jobq_fatal("bad payload: %s", problem);
    if (payload.n < 0 || payload.n > MAX_N)
        return jobq_fatal("`n` is %" PRId64 ", which is not in 0 to %d", payload.n, MAX_N);

    jobq_log(JOBQ_INFO, "doubling %" PRId64 ", attempt %u of %u", payload.n, job->attempt, job->max_attempts);

    // The attempt fails, and the job runs again after the backoff of its type.
    if (strcmp(payload.service, "down") == 0)
        return jobq_retry("the service is down");
    // The attempt fails, and the job runs again after this delay.
    if (strcmp(payload.service, "busy") == 0)
        return jobq_retry_after(30 * 1000, "the service is busy");
    // Not a failure: the job runs again after this delay, and the attempt isn't counted.
    if (strcmp(payload.service, "closed") == 0)
        return jobq_snooze(60 * 1000);

    return jobq_done("{\"doubled\":%" PRId64 "}", payload.n * 2);
}
