/** Formats of texts in custom resources that are checked; others mean nothing (kube-openapi validation/strfmt, schema/defaulting formats). */
import { isIP } from "node:net";

const uuid = (version: string, variant: string) =>
  new RegExp(`^[0-9A-F]{8}-?[0-9A-F]{4}-?${version}[0-9A-F]{3}-?${variant}[0-9A-F]{3}-?[0-9A-F]{12}$`, "i");

const pattern = (regexp: RegExp) => (text: string) => regexp.test(text);

const host =
  /^(?=.{1,253}$)([a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?)(\.[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?)*\.?$/;

const checks: Readonly<Record<string, (text: string) => boolean>> = {
  bsonobjectid: pattern(/^[0-9a-f]{24}$/i),
  uri: isUri,
  email: pattern(/^[^\s@<>()]+@[^\s@<>()]+$/),
  hostname: pattern(host),
  ipv4: (text) => isIP(text) === 4,
  ipv6: (text) => isIP(text) === 6,
  cidr: isCidr,
  mac: pattern(/^([0-9a-f]{2}[:-]){5}([0-9a-f]{2}[:-]){0,2}[0-9a-f]{2}$|^([0-9a-f]{4}\.){2,3}[0-9a-f]{4}$/i),
  uuid: pattern(uuid("[0-9A-F]", "[0-9A-F]")),
  uuid3: pattern(uuid("3", "[0-9A-F]")),
  uuid4: pattern(uuid("4", "[89AB]")),
  uuid5: pattern(uuid("5", "[89AB]")),
  isbn: (text) => isIsbn10(text) || isIsbn13(text),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  creditcard: isCreditCard,
  ssn: pattern(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/),
  hexcolor: pattern(/^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/),
  rgbcolor: pattern(
    /^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$/,
  ),
  byte: pattern(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})?$/),
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && isDay(text),
  duration: pattern(/^([-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w))+$|^0$/),
  "date-time": (text) =>
    /^\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)([.,]\d+)?([Zz]|[+-]\d\d(:?\d\d)?)?$/.test(
      text,
    ) && isDay(text.slice(0, 10)),
};

/** True when the text is of the format, or the format is none that is checked. */
export function hasFormat(format: string, text: string): boolean {
  const check = Object.hasOwn(checks, format) ? checks[format] : undefined;
  return check === undefined || check(text);
}

function isUri(text: string): boolean {
  return URL.canParse(text) || /^\/[^\s]*$/.test(text);
}

function isCidr(text: string): boolean {
  const [address = "", bits = "", more] = text.split("/");
  const version = isIP(address);
  return (
    more === undefined &&
    version !== 0 &&
    /^\d{1,3}$/.test(bits) &&
    Number(bits) <= (version === 4 ? 32 : 128)
  );
}

/** The day is one of its month. */
function isDay(text: string): boolean {
  const [year = 0, month = 0, day = 0] = text.split("-").map(Number);
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1];
  return days !== undefined && day >= 1 && day <= days;
}

function digitsOf(text: string): string {
  return text.replace(/[\s-]+/g, "");
}

function isIsbn10(text: string): boolean {
  const digits = digitsOf(text);
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  const sum = [...digits].reduce((total, d, i) => total + (10 - i) * (d === "X" ? 10 : Number(d)), 0);
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = digitsOf(text);
  if (!/^\d{13}$/.test(digits)) return false;
  return [...digits].reduce((total, d, i) => total + Number(d) * (i % 2 === 0 ? 1 : 3), 0) % 10 === 0;
}

function isCreditCard(text: string): boolean {
  const digits = digitsOf(text);
  if (!/^\d{13,19}$/.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, d, i) => {
    const value = Number(d) * (i % 2 === 1 ? 2 : 1);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}
