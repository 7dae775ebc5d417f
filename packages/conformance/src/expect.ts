/** Assertions of the checks. Each failure names the actual and the expected outcome. */
import { CsiCallError, type GrpcCode } from "@longshore/csi";
import { CheckFailure } from "./check-result.ts";

/** How a call ended: its answer or its failure. */
export type Ending<T> =
  | { readonly code: "OK"; readonly answer: T }
  | { readonly code: Exclude<GrpcCode, "OK">; readonly error: CsiCallError };

/** Waits for a call to end, however it does. @throws what is no ending: the driver gave no answer */
export async function endingOf<T>(call: Promise<T>): Promise<Ending<T>> {
  try {
    return { code: "OK", answer: await call };
  } catch (error) {
    if (!(error instanceof CsiCallError) || !error.answered || error.code === "OK") throw error;
    return { code: error.code, error };
  }
}

/** @throws CheckFailure with the text unless the condition holds */
export function must(condition: boolean, text: string): asserts condition {
  if (!condition) throw new CheckFailure(text);
}

/** The call must end with one of the codes. @param what how the call was made, e.g. `CreateVolume without a name` */
export async function mustEnd<T>(
  what: string,
  call: Promise<T>,
  ...codes: readonly GrpcCode[]
): Promise<Ending<T>> {
  const ending = await endingOf(call);
  if (!codes.includes(ending.code)) {
    throw new CheckFailure(`${what} ${described(ending)}; must be ${listed(codes)}`);
  }
  return ending;
}

/** The call must succeed. Returns its answer. */
export async function mustAnswer<T>(what: string, call: Promise<T>): Promise<T> {
  const ending = await endingOf(call);
  if (ending.code !== "OK") throw new CheckFailure(`${what} ${described(ending)}; must be OK`);
  return ending.answer;
}

function described<T>(ending: Ending<T>): string {
  if (ending.code === "OK") return "was answered OK";
  const { detail } = ending.error;
  return `was refused with ${ending.code}${detail === "" ? "" : ` (${detail})`}`;
}

/** `A`, `A or B`, `A, B or C`. */
export function listed(words: readonly string[]): string {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}
