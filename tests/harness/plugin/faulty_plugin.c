/* A plugin that does what the environment variable FAULT says: everything that a plugin can do
 * wrong. */
#include "kdacheck_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int64_t bytes_of(const kdacheck_tensor* tensor) {
  static const int64_t sizes[] = {2, 2, 4, 8, 4, 8};
  int64_t bytes = sizes[tensor->dtype];
  for (int32_t i = 0; i < tensor->rank; ++i) bytes *= tensor->shape[i];
  return bytes;
}

static int32_t say(const kdacheck_call* call, int32_t status, const char* code, const char* text) {
  snprintf(call->code, call->code_size, "%s", code);
  snprintf(call->text, call->text_size, "%s", text);
  return status;
}

static int32_t run(const kdacheck_call* call) {
  const char* fault = getenv("FAULT");
  static int calls = 0;
  ++calls;
  if (!fault) fault = "";
  const int64_t o_bytes = bytes_of(call->o);
  char* o = call->o->data;
  const int64_t kept =
      strcmp(fault, "unwritten") == 0 ? 4 : 0; /* bytes that are left as they were */
  memset(o, 0, (size_t)(o_bytes - kept));
  if (call->final_state) memset(call->final_state->data, 0, (size_t)bytes_of(call->final_state));
  if (strcmp(fault, "crash") == 0) {
    fprintf(stderr, "about to fall\n");
    abort();
  }
  if (strcmp(fault, "hang") == 0) sleep(1000);
  if (strcmp(fault, "exit") == 0) exit(0);
  if (strcmp(fault, "behind") == 0) o[o_bytes + 3] = 1;
  if (strcmp(fault, "before") == 0) ((char*)call->q->data)[-5] = 1;
  if (strcmp(fault, "far") == 0) o[o_bytes + 100000] = 1;
  if (strcmp(fault, "input") == 0) ((char*)call->k->data)[6] ^= 1;
  if (strcmp(fault, "peek") == 0) o[0] = ((const char*)call->v->data)[bytes_of(call->v)];
  if (strcmp(fault, "race") == 0) o[0] = (char)calls;
  if (strcmp(fault, "refuse") == 0)
    return say(call, KDACHECK_REFUSED, "beta_shape", "not this beta");
  if (strcmp(fault, "unsupported") == 0)
    return say(call, KDACHECK_UNSUPPORTED, "", "not made for it");
  if (strcmp(fault, "unavailable") == 0)
    return say(call, KDACHECK_UNAVAILABLE, "", "no such machine");
  if (strcmp(fault, "error") == 0) return say(call, KDACHECK_ERROR, "", "a wire came loose");
  if (strcmp(fault, "status") == 0) return 99;
  return KDACHECK_OK;
}

const kdacheck_plugin* kdacheck_plugin_get(void) {
  static kdacheck_plugin plugin = {KDACHECK_PLUGIN_VERSION, KDACHECK_HOST, "faulty", run};
  const char* fault = getenv("FAULT");
  if (fault && strcmp(fault, "version") == 0) plugin.version = 7;
  if (fault && strcmp(fault, "cuda") == 0) plugin.memory = KDACHECK_CUDA;
  return &plugin;
}
