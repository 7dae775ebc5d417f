import { expect, it } from "vitest";
import { generateSigningKey, signingKey } from "./signing-key.ts";

const key = signingKey(generateSigningKey());
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

it("takes what it has signed", () => {
  expect(key.verify(key.sign({ sub: "a" }))).toEqual({ sub: "a" });
});

it("refuses a token in which any one character is another, one more or one less", () => {
  const token = key.sign({ sub: "system:serviceaccount:default:a", exp: 1 });
  const accepted: string[] = [];
  const attempt = (text: string) => {
    if (text !== token && key.verify(text) !== undefined) accepted.push(text);
  };
  for (let at = 0; at <= token.length; at++) {
    const before = token.slice(0, at);
    const place = alphabet.indexOf(token[at] ?? "A");
    for (const by of [
      alphabet[place ^ 1],
      alphabet[place ^ 2],
      "!",
      "=",
      ".",
      " ",
      "\n",
      "\0",
      "+",
      "/",
      "\u0100",
    ]) {
      attempt(before + by + token.slice(at + 1));
      attempt(before + by + token.slice(at));
    }
    attempt(before + token.slice(at + 1));
    attempt(before);
  }
  for (const padding of ["!!", "=", "==", " ", "\n", ".", ".x", "\t", "A", "AA", "AAAA"])
    attempt(token + padding);
  // The last character has bits that say nothing: each of the others that decode to the same signature.
  for (const last of alphabet) attempt(token.slice(0, -1) + last);
  expect(accepted).toEqual([]);
});
