/**
 * The path of a URL of the form `aws://host/path`, decoded, or the reason why it is none. Follows
 * the reference's URL parser (RFC 3986 with its leniencies), because what it refuses is refused and what
 * it lets through is not.
 */

import { textFromUtf8, utf8Bytes } from "./go-text.ts";
import type { Fault } from "./translation-error.ts";

const USERINFO = /^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/;
const HOST_ASCII = /^[A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"%\u0080-\u{10ffff}]*$/u;
const PORT = /^(:[0-9]*)?$/;
const remedy = "write it as aws://<zone>/vol-<id> or as vol-<id>";

/** The decoded path of `url`, which must begin with `scheme://`. */
export function urlPath(url: string, scheme: string): string | Fault {
  // The reference takes the fragment off before it looks for control characters, so one in there passes.
  const [beforeFragment, fragment] = cut(url, "#");
  if (hasControlCharacter(beforeFragment)) return { problem: "a control character in a URL", remedy };
  const rest = cut(beforeFragment.slice(`${scheme}://`.length), "?")[0];
  const slash = rest.indexOf("/");
  const authority = slash < 0 ? rest : rest.slice(0, slash);
  const fault = authorityFault(authority);
  if (fault !== undefined) return { problem: fault, remedy };
  const path = percentDecoded(slash < 0 ? "" : rest.slice(slash));
  if (path === undefined || percentDecoded(fragment) === undefined) {
    return { problem: "a percent sign that begins no escape", remedy };
  }
  return path;
}

function hasControlCharacter(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x20 || unit === 0x7f) return true;
  }
  return false;
}

function cut(text: string, separator: string): [before: string, after: string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function authorityFault(authority: string): string | undefined {
  const at = authority.lastIndexOf("@");
  if (at >= 0) {
    const userinfo = authority.slice(0, at);
    if (!USERINFO.test(userinfo) || percentDecoded(userinfo) === undefined)
      return "invalid user information in a URL";
  }
  return hostFault(authority.slice(at + 1));
}

function hostFault(host: string): string | undefined {
  if (host.startsWith("[")) {
    const close = host.lastIndexOf("]");
    if (close < 0) return "a missing ] in the host of a URL";
    if (!PORT.test(host.slice(close + 1))) return "an invalid port in a URL";
  } else {
    const colon = host.lastIndexOf(":");
    if (colon >= 0 && !PORT.test(host.slice(colon))) return "an invalid port in a URL";
  }
  // In a host only bytes beyond ASCII may be escaped, and the percent sign of a zone identifier.
  if (/%(?!25|[89a-f][0-9a-f])/iu.test(host)) return "an invalid escape in the host of a URL";
  if (!HOST_ASCII.test(host)) return "an invalid character in the host of a URL";
  return undefined;
}

/** Percent-decoded text, or `undefined` where a percent sign begins no escape. */
function percentDecoded(text: string): string | undefined {
  if (!text.includes("%")) return text;
  if (/%(?![0-9a-f]{2})/iu.test(text)) return undefined;
  const bytes = text
    .split(/%([0-9a-f]{2})/iu)
    .flatMap((part, i) => (i % 2 === 1 ? [Number.parseInt(part, 16)] : utf8Bytes(part)));
  return textFromUtf8(bytes);
}
