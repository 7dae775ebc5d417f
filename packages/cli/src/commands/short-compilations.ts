/**
 * How much V8 compiles at a time. What has become hot is compiled beside the program, by a thread that Linux often puts on
 * the processor of the one that answers, though another is idle: an answer then waits for as long as a function takes,
 * 2 to 4 ms with what V8 builds into it by default.
 */
import { setFlagsFromString } from "node:v8";

/** Has V8 build less of other functions into one: many short compilations instead of few long ones. Measured with V8 11.3 (Node 20). */
export function compileInSmallPieces(): void {
  setFlagsFromString("--max-inlined-bytecode-size=120");
  setFlagsFromString("--max-inlined-bytecode-size-cumulative=200");
}
