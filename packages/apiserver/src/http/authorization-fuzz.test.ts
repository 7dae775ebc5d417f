/** A sample of the fuzz of authorization (scripts/fuzz-authorization.ts sends more), and that it sees what it is for. */
import { expect, it } from "vitest";
import { fuzzAuthorization } from "../testing/authorization-fuzz/run.ts";

it("finds nothing that is done without the right to do it", async () => {
  const { violations, codes, changes, shown } = await fuzzAuthorization(1, 3000);
  expect(violations).toEqual([]);
  // It was not refused at the door: users do what their right is for, too.
  expect(changes).toBeGreaterThan(100);
  expect(shown).toBeGreaterThan(100);
  for (const code of [200, 201, 403, 404, 405]) expect(codes.get(code) ?? 0).toBeGreaterThan(20);
}, 60_000);

it("finds violations where every request is allowed", async () => {
  const { violations } = await fuzzAuthorization(1, 500, { authorizationModes: ["AlwaysAllow"] });
  const kinds = ["creates", "deletes", "changes", "shows", "gives rights", "token"];
  const found = violations.map(({ why }) => why).join("\n");
  expect(kinds.filter((one) => found.includes(one)).length).toBeGreaterThan(2);
});
