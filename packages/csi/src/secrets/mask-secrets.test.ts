import { SeededRandom } from "@longshore/runtime";
import { expect, test } from "vitest";
import { formsOfSecret, holdsSecret, maskSecrets, strippedSecret } from "./mask-secrets.ts";
import { isCredentialName } from "./request-secrets.ts";

const mask = (text: string, ...values: string[]) =>
  maskSecrets(
    text,
    values.map((value) => formsOfSecret(value)),
  );

test.each([
  ["as it is", "login hunter2hunter2 failed", "login *** failed"],
  ["several times, one after the other", "hunter2hunter2hunter2hunter2", "***"],
  ["percent-encoded", "user:p%40ss%2fword@host", "user:***@host"],
  ["percent-encoded without need", "%70@ss%2Fw%6frd", "***"],
  ["as a form has it", "q=two+w%C3%B6rds&x=1+1", "q=***&x=1+1"],
  ["in JSON", String.raw`{"a":"q\"uo\\te\nline"}`, '{"a":"***"}'],
  ["in JSON in JSON", JSON.stringify(JSON.stringify({ a: 'q"uo\\te\nline' })), '"{\\"a\\":\\"***\\"}"'],
  ["with other characters escaped", String.raw`two w\u00f6rds, two w\U000000f6rds`, "***, ***"],
  ["beyond the first plane", String.raw`key \ud83d\ude00-smile or 😀-smile`, "key *** or ***"],
  ["bytes of it", String.raw`two w\xc3\xb6rds`, "***"],
  ["in hex", "0x68756e7465723268756E746572322e", "0x***2e"],
  ["in base64", `a ${Buffer.from("hunter2hunter2").toString("base64")} b`, "a *** b"],
  ["in base64 for URLs", `a ${Buffer.from("??>>?~?>hunter").toString("base64url")} b`, "a *** b"],
  ["without the line end that its file has", "bad token-of-file.", "bad ***."],
  ["a line of it", "PEM: MIIEvQIBADANBgkqhkiG9w0B is no key", "PEM: *** is no key"],
])("a value is taken out %s", (_, text, expected) => {
  const values = [
    "hunter2hunter2",
    "p@ss/word",
    "two wörds",
    'q"uo\\te\nline',
    "😀-smile",
    "??>>?~?>hunter",
    "token-of-file\n",
    "-----BEGIN-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END-----\n",
  ];
  expect(mask(text, ...values).replaceAll(strippedSecret, "***")).toBe(expected);
});

test("base64 of a user and a password shows nothing of the password, at any offset", () => {
  for (const user of ["", "a", "ab", "abc"]) {
    const text = `Basic ${Buffer.from(`${user}:correct horse`).toString("base64")}`;
    const [, left = ""] = mask(text, "correct horse").split(" ");
    const shown = Buffer.from(left.replace(strippedSecret, ""), "base64").toString("latin1");
    expect(`${user}:`.startsWith(shown.slice(0, user.length + 1)), shown).toBe(true);
    expect(shown.length).toBeLessThanOrEqual(user.length + 1);
  }
});

test("values that overlap are taken out together", () => {
  expect(mask("xabcdefx", "abcd", "cdef")).toBe(`x${strippedSecret}x`);
  expect(mask("aaaaa", "aaaa")).toBe(strippedSecret);
  expect(mask("prefix-long prefix", "prefix", "prefix-long")).toBe(`${strippedSecret} ${strippedSecret}`);
});

test("a value of one to three characters turns no text into stars", () => {
  expect(mask("a volume of 100 bytes", "a", "of", "100", "")).toBe("a volume of 100 bytes");
});

test("characters that mean something to patterns mean nothing here", () => {
  expect(mask("a.c* abc $& $1 (.*)+", "a.c*", "(.*)+")).toBe(`${strippedSecret} abc $& $1 ${strippedSecret}`);
});

test("a text that is too long to be searched is not shown", () => {
  expect(mask("x".repeat(65_537), "hunter2")).toBe("(a text of 65537 characters: too long to be shown)");
});

test("whatever the values and the texts are, nothing of a value is left", () => {
  const random = new SeededRandom(18);
  const below = (bound: number) => random.below(bound, "secret-mask");
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
  const alphabet = [..."abAB01 %+\\\"'/=.*$&(-_?\n\tüß€😀"];
  const word = (max: number) => Array.from({ length: 1 + below(max) }, () => pick(alphabet)).join("");
  const forms: readonly ((value: string) => string)[] = [
    (v) => v,
    (v) => encodeURIComponent(v),
    (v) => new URLSearchParams([["", v]]).toString().slice(1),
    (v) => JSON.stringify(v).slice(1, -1),
    (v) => JSON.stringify(JSON.stringify(v)).slice(3, -3),
    (v) => Buffer.from(v).toString("hex"),
  ];
  for (let round = 0; round < 3000; round++) {
    const values = Array.from({ length: 1 + below(4) }, () => word(8));
    const first = values[0] ?? "";
    if (below(3) === 0) values.push(first + word(3), [...first].slice(1).join("") + word(2), word(2) + first);
    const pieces = Array.from({ length: 4 }, () => (below(2) ? word(5) : pick(forms)(pick(values))));
    const text = pieces.join("");
    const masked = mask(text, ...values);
    const known = values.map((value) => formsOfSecret(value));
    for (const piece of masked.split(strippedSecret)) {
      expect(holdsSecret(piece, known), JSON.stringify({ text, values, masked })).toBe(false);
      for (const value of values.filter((each) => each.length >= 4)) expect(piece).not.toContain(value);
    }
    const isClean = !holdsSecret(text, known);
    expect(masked === text, JSON.stringify({ text, values, masked })).toBe(isClean);
  }
});

test("a credential is recognised by its name", () => {
  for (const name of [
    "password",
    "DB_PASSWORD",
    "userKey",
    "secret-access-key",
    "token2",
    "encryptionPassphrase",
  ])
    expect(isCredentialName(name), name).toBe(true);
  for (const name of [
    "user",
    "username",
    "endpoint",
    "publicKey",
    "accessKeyID",
    "kms-key-id",
    "keyring.conf",
  ])
    expect(isCredentialName(name), name).toBe(false);
});
