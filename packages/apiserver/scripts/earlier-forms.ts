/**
 * Types whose earlier version has another name for a member, from the text of the later one: SubjectAccessReviews of v1beta1 have
 * `group` where v1 has `groups`. Source: kubernetes staging/src/k8s.io/api/authorization/v1beta1/types.go.
 */
const ofReviews = ["LocalSubjectAccessReview", "SubjectAccessReview", "SubjectAccessReviewSpec"];

/** The types of the earlier version, each with the text of its members. @param textOf the text of a type of v1 */
export function earlierForms(
  textOf: (struct: string) => string,
): readonly (readonly [struct: string, text: string])[] {
  return ofReviews.map((type) => [
    `authorization.v1beta1.${type}`,
    textOf(`authorization.v1.${type}`)
      .replace(/\bgroups:/, "group:")
      .replace("v1.SubjectAccessReviewSpec", "v1beta1.SubjectAccessReviewSpec"),
  ]);
}
