/** The elements of which X.509 certificates consist (RFC 5280), written in DER by asn1js. */
import { createHash } from "node:crypto";
import type { BaseBlock, Sequence } from "asn1js";
import { addressBytes } from "./address-bytes.ts";

/** Object identifiers: algorithms, parts of names, extensions and purposes (RFC 5758, 3.2; RFC 5280, 4.2.1). */
export const ids = {
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  commonName: "2.5.4.3",
  organization: "2.5.4.10",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAlternativeName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  clientAuth: "1.3.6.1.5.5.7.3.2",
} as const;

/** The bits of KeyUsage from the left, and how many at the right are not used. */
export const keyUsages = {
  digitalSignature: { bits: 0b1000_0000, unused: 7 },
  digitalSignatureAndCertSign: { bits: 0b1000_0100, unused: 2 },
} as const;

type Asn1 = typeof import("asn1js");

/** Any element of a certificate. */
export type Element = BaseBlock;

/** Writes the elements of certificates. */
export class CertificateWriter {
  readonly #asn1: Asn1;

  constructor(asn1: Asn1) {
    this.#asn1 = asn1;
  }

  sequence(...value: readonly Element[]): Element {
    return new this.#asn1.Sequence({ value: [...value] });
  }

  id(value: string): Element {
    return new this.#asn1.ObjectIdentifier({ value });
  }

  octets(valueHex: Uint8Array): Element {
    return new this.#asn1.OctetString({ valueHex });
  }

  bits(valueHex: Uint8Array, unusedBits = 0): Element {
    return new this.#asn1.BitString({ valueHex, unusedBits });
  }

  keyUsage({ bits, unused }: { readonly bits: number; readonly unused: number }): Element {
    return this.bits(Uint8Array.of(bits), unused);
  }

  true(): Element {
    return new this.#asn1.Boolean({ value: true });
  }

  /** @param bytes of a positive number */
  integer(bytes: Uint8Array): Element {
    return new this.#asn1.Integer({ valueHex: bytes });
  }

  /** With two digits for the years in which certificates have two (RFC 5280, section 4.1.2.5). */
  time(valueDate: Date): Element {
    const year = valueDate.getUTCFullYear();
    const isShort = year >= 1950 && year < 2050;
    const whole = new Date(Math.floor(valueDate.getTime() / 1000) * 1000);
    return isShort
      ? new this.#asn1.UTCTime({ valueDate: whole })
      : new this.#asn1.GeneralizedTime({ valueDate: whole });
  }

  /** `[place]` around an element. */
  explicit(place: number, member: Element): Element {
    return new this.#asn1.Constructed({ idBlock: { tagClass: 3, tagNumber: place }, value: [member] });
  }

  /** `[place]` instead of the element's own tag. */
  implicit(place: number, valueHex: Uint8Array): Element {
    return new this.#asn1.Primitive({ idBlock: { tagClass: 3, tagNumber: place }, valueHex });
  }

  /** An attribute of a name, as a separate relative distinguished name. */
  attribute(type: string, value: string): Element {
    const attribute = this.sequence(this.id(type), new this.#asn1.Utf8String({ value }));
    return new this.#asn1.Set({ value: [attribute] });
  }

  extension(id: string, value: Element): Element {
    return this.sequence(this.id(id), this.octets(bytesOf(value)));
  }

  /** A critical extension: readers that do not know it must reject the certificate. */
  criticalExtension(id: string, value: Element): Element {
    return this.sequence(this.id(id), this.true(), this.octets(bytesOf(value)));
  }

  /** A host as a server's certificate names it: dNSName, or iPAddress. */
  generalName(host: string): Element {
    const address = addressBytes(host);
    return address === undefined ? this.implicit(2, Buffer.from(host)) : this.implicit(7, address);
  }

  /** Organizations first, each as a separate attribute: the server reads a client's groups from them. */
  name(organizations: readonly string[], commonName: string): Element {
    return this.sequence(
      ...organizations.map((organization) => this.attribute(ids.organization, organization)),
      this.attribute(ids.commonName, commonName),
    );
  }

  /** An element that is there already. @throws Error when it is none, or cut off */
  read(der: Uint8Array): Sequence {
    const { offset, result } = this.#asn1.fromBER(der);
    if (offset === -1 || !(result instanceof this.#asn1.Sequence)) {
      throw new Error("a certificate or key is not DER, or cut off");
    }
    return result;
  }

  /** The name of a certificate's subject: behind version, if it says it, serial number, algorithm, issuer and validity. */
  subjectOf(certificate: Uint8Array): Element {
    const [content] = this.read(certificate).valueBlock.value;
    const fields = content instanceof this.#asn1.Sequence ? content.valueBlock.value : [];
    const subject = fields[fields[0] instanceof this.#asn1.Integer ? 4 : 5];
    if (subject === undefined) throw new Error("the authority's certificate names no subject");
    return subject;
  }

  /** The digest of the key's bits (RFC 5280, section 4.2.1.2, the first method). */
  keyIdentifier(spki: Uint8Array): Buffer {
    const bits = this.read(spki).valueBlock.value[1];
    if (!(bits instanceof this.#asn1.BitString))
      throw new Error("the public key of a certificate has no bits");
    return createHash("sha1").update(bits.valueBlock.valueHexView).digest();
  }
}

/** The writer; its library is loaded when it is first asked for, since most servers never make a certificate. */
export async function certificateWriter(): Promise<CertificateWriter> {
  return new CertificateWriter(await import("asn1js"));
}

/** The element as DER. */
export function bytesOf(element: Element): Buffer {
  return Buffer.from(element.toBER());
}
