/**
 * The rules for names and labels (k8s.io/apimachinery/pkg/util/validation). Each function returns a
 * list of problems in the words that API clients know; an empty list means valid.
 */

const alphanumeric = "must start and end with an alphanumeric character";
const dns1123LabelFormat = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const dns1123SubdomainFormat = `${dns1123LabelFormat}(\\.${dns1123LabelFormat})*`;
const dns1035LabelFormat = "[a-z]([-a-z0-9]*[a-z0-9])?";
const namePartFormat = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const labelValueFormat = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const dns1123Label = new RegExp(`^${dns1123LabelFormat}$`);
const dns1123Subdomain = new RegExp(`^${dns1123SubdomainFormat}$`);
const dns1035Label = new RegExp(`^${dns1035LabelFormat}$`);
const namePart = new RegExp(`^${namePartFormat}$`);
const labelValue = new RegExp(`^${labelValueFormat}$`);

/** Longest DNS label, and longest name part and value of a label, in bytes. */
const LABEL_MAX = 63;
/** Longest DNS subdomain, in bytes. */
const SUBDOMAIN_MAX = 253;

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

function regexComplaint(rule: string, format: string, ...examples: readonly string[]): string {
  const shown = examples.map((example) => `'${example}'`).join(",  or ");
  return `${rule} (e.g. ${shown}, regex used for validation is '${format}')`;
}

/** Complaints about the name of, say, a Namespace or a Service port. */
export function dns1123LabelErrors(text: string): string[] {
  return [
    ...(bytesOf(text) > LABEL_MAX ? [`must be no more than ${LABEL_MAX} characters`] : []),
    ...(dns1123Label.test(text)
      ? []
      : dns1123Subdomain.test(text) && bytesOf(text) <= LABEL_MAX
        ? ["must not contain dots"]
        : [
            regexComplaint(
              `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and ${alphanumeric}`,
              dns1123LabelFormat,
              "my-name",
              "123-abc",
            ),
          ]),
  ];
}

/** Complaints about the name of most objects. */
export function dns1123SubdomainErrors(text: string): string[] {
  return [
    ...(bytesOf(text) > SUBDOMAIN_MAX ? [`must be no more than ${SUBDOMAIN_MAX} characters`] : []),
    ...(dns1123Subdomain.test(text)
      ? []
      : [
          regexComplaint(
            `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and ${alphanumeric}`,
            dns1123SubdomainFormat,
            "example.com",
          ),
        ]),
  ];
}

/** Complaints about the name of a Service. */
export function dns1035LabelErrors(text: string): string[] {
  return [
    ...(bytesOf(text) > LABEL_MAX ? [`must be no more than ${LABEL_MAX} characters`] : []),
    ...(dns1035Label.test(text)
      ? []
      : [
          regexComplaint(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            dns1035LabelFormat,
            "my-name",
            "abc-123",
          ),
        ]),
  ];
}

/** Complaints about a key of a label or annotation: a name with an optional DNS prefix. */
export function qualifiedNameErrors(text: string): string[] {
  const parts = text.split("/");
  const rule = `must consist of alphanumeric characters, '-', '_' or '.', and ${alphanumeric}`;
  const examples = ["MyName", "my.name", "123-abc"];
  if (parts.length > 2) {
    const complaint = regexComplaint(`a valid label key ${rule}`, namePartFormat, ...examples);
    return [`${complaint} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const complaints: string[] = [];
  const name = parts.at(-1) ?? "";
  const prefix = parts.length === 2 ? parts[0] : undefined;
  if (prefix === "") complaints.push("prefix part must be non-empty");
  else if (prefix !== undefined) {
    complaints.push(
      ...dns1123SubdomainErrors(prefix).map(
        // A key's length is counted in bytes, and the complaint says so.
        (complaint) =>
          `prefix part ${complaint.replace(/^(must be no more than \d+) characters$/, "$1 bytes")}`,
      ),
    );
  }
  if (name === "") complaints.push("name part must be non-empty");
  else if (bytesOf(name) > LABEL_MAX) complaints.push(`name part must be no more than ${LABEL_MAX} bytes`);
  if (!namePart.test(name)) {
    complaints.push(regexComplaint(`name part ${rule}`, namePartFormat, ...examples));
  }
  return complaints;
}

/** Complaints about the value of a label. */
export function labelValueErrors(text: string): string[] {
  return [
    ...(bytesOf(text) > LABEL_MAX ? [`must be no more than ${LABEL_MAX} bytes`] : []),
    ...(labelValue.test(text)
      ? []
      : [
          regexComplaint(
            `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and ${alphanumeric}`,
            labelValueFormat,
            "MyValue",
            "my_value",
            "12345",
          ),
        ]),
  ];
}
