/** Texts of templates that all charts share. */
import { managedByLabel } from "../objects/labels.ts";
import { TemplateText } from "../yaml-text.ts";

/** A template whose lines stand below its member. */
export const block = (expression: string): TemplateText => new TemplateText(expression, true);

/** The text where the condition holds. */
export function onlyIf(condition: string, text: string): string {
  return text === "" ? "" : `{{- if ${condition} }}\n${text}{{- end }}\n`;
}

/** Labels with Helm as the one who made the object. */
export function releaseLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(labels).map(([key, value]) => [
      key,
      key === managedByLabel ? "{{ $.Release.Service }}" : value,
    ]),
  );
}
