/** The index of a role says what its rules say, and is not longer than they are. */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Attributes } from "../authorizer.ts";
import { type PolicyRule, ruleAllows } from "./policy-rule.ts";
import { roleAllows } from "./role-index.ts";

const words = fc.constantFrom("", "a", "b", "c", "*");
const resources = fc.constantFrom("a", "b", "a/x", "*/x", "*");
/** Lists that are long enough, together, for a rule that is not put into the index pair by pair. */
const padded = <T>(of: fc.Arbitrary<T>) => fc.tuple(fc.array(of, { maxLength: 4 }), fc.boolean());
const rules: fc.Arbitrary<PolicyRule> = fc
  .record({
    verbs: fc.array(words, { minLength: 1, maxLength: 2 }),
    groups: padded(words),
    of: padded(resources),
  })
  .map(({ verbs, groups: [groups, isWide], of: [of] }) => {
    const more = isWide ? Array.from({ length: 40 }, (_, i) => `more${i}`) : [];
    return { verbs, apiGroups: [...groups, ...more], resources: [...more, ...of] };
  });
const attributes: fc.Arbitrary<Attributes> = fc
  .record({ verb: words, group: words, resource: fc.constantFrom("a", "b"), sub: fc.constantFrom("", "x") })
  .map(({ verb, group, resource, sub }) => ({
    user: { name: "u", groups: [] },
    verb,
    group,
    resource,
    ...(sub === "" ? {} : { subresource: sub }),
  }));

it("a role allows what one of its rules allows", () => {
  fc.assert(
    fc.property(fc.array(rules, { maxLength: 4 }), attributes, (list, asked) => {
      const expected = list.some((rule) => ruleAllows(rule, asked));
      expect(roleAllows({ metadata: { name: "r" }, rules: list } as never, asked)).toBe(expected);
    }),
    { numRuns: 1000 },
  );
});

it("a rule of many groups and resources is not put down pair by pair", () => {
  const looksOf = (count: number) => {
    let looks = 0;
    const names = (prefix: string) =>
      new Proxy(
        Array.from({ length: count }, (_, i) => `${prefix}${i}`),
        {
          get(list, key) {
            looks++;
            return Reflect.get(list, key);
          },
        },
      );
    const rule = { verbs: ["get"], apiGroups: names("g"), resources: names("r") };
    const asked = { user: { name: "u", groups: [] }, verb: "get", group: "g1", resource: "none" };
    expect(roleAllows({ metadata: { name: "r" }, rules: [rule] } as never, asked)).toBe(false);
    return looks;
  };
  expect(looksOf(1600)).toBeLessThan(4.2 * looksOf(400));
});
