/**
 * Sends random requests of users who have one right each to the API server, in its own process, and judges each by its
 * effect: what changed in the store, which objects and tokens the answer shows. Nothing may happen that the user's one
 * right is not for.
 *
 *   tsx scripts/fuzz-authorization.ts [--requests=20000] [--seed=1] [--emulated-version=1.36]
 *
 * Exits 1 when something does, saying what, with the right, the request and how to repeat it.
 */
import { parseArgs } from "node:util";
import { fuzzAuthorization } from "../packages/apiserver/src/testing/authorization-fuzz/run.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "20000" },
    seed: { type: "string", default: "1" },
    "emulated-version": { type: "string", default: "1.36" },
  },
});
const [seed, requests] = [values.seed, values.requests].map((text, i) => {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < i) {
    console.error(
      `--${i === 0 ? "seed" : "requests"}: ${JSON.stringify(text)} is not a whole number from ${i} on`,
    );
    process.exit(2);
  }
  return number;
}) as [number, number];

const emulatedVersion = values["emulated-version"];
const begun = performance.now();
const { violations, codes, changes, shown } = await fuzzAuthorization(seed, requests, { emulatedVersion });
for (const { why, right, request, answer, requests: sent } of violations) {
  console.error(
    [
      `without the right to: ${why}`,
      `  right   ${JSON.stringify(right)}`,
      `  request ${request.method} ${request.url} ${JSON.stringify(request.headers)} ${request.body}`,
      `  answer  ${answer.status} ${answer.body.slice(0, 300)}`,
      `  repeat  tsx scripts/fuzz-authorization.ts --seed=${seed} --requests=${sent} --emulated-version=${emulatedVersion}`,
    ].join("\n"),
  );
}
const seconds = ((performance.now() - begun) / 1000).toFixed(0);
const byCode = [...codes].sort(([a], [b]) => a - b).map(([code, count]) => `${code}: ${count}`);
console.log(
  `${requests} requests, seed ${seed}, ${seconds} s; ${changes} changed something, ${shown} showed objects`,
);
console.log(byCode.join(", "));
if (violations.length > 0) process.exitCode = 1;
// A fuzz whose users get nothing done finds nothing.
else if (requests >= 1000 && (changes < requests / 50 || shown < requests / 50)) {
  console.error("hardly any request had an effect: the fuzz looks at nothing");
  process.exitCode = 1;
}
