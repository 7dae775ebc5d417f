/** How long a failed operation on a volume waits before it is tried again. Source: docs/behaviour/node-agent.md 7.1. */
import type { BackoffPolicy } from "@longshore/runtime";

/** The back-off of volume operations: 500 ms, doubling to 2 min 2 s. */
export const operationBackoff: BackoffPolicy = { initialMs: 500, maximumMs: 122_000 };
