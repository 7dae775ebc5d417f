/** The load driver's process: takes jobs over IPC, returns what it measured. */

import { type Job, measure } from "./load.ts";
import type { Target } from "./raw-http.ts";

process.on("message", (message: { readonly target: Target; readonly job: Job }) => {
  measure(message.target, message.job).then(
    (measured) => process.send?.({ measured }),
    (error: Error) => process.send?.({ error: error.stack }),
  );
});
