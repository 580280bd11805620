/** Finds the elements that a module works with, and makes new ones from the page's templates. */

/** The element below `root` that is marked `data-part="name"`. */
export function part<E extends Element = HTMLElement>(root: ParentNode, name: string): E {
  const element = root.querySelector<E>(`[data-part="${name}"]`);
  if (element === null) throw new Error(`The page has no part "${name}"`);
  return element;
}

/** A copy of the one element in `<template id>`. */
export function fromTemplate(document: Document, id: string): HTMLElement {
  const template = document.querySelector<HTMLTemplateElement>(`template#${id}`);
  const copy = template && document.importNode(template.content, true).querySelector<HTMLElement>('*');
  if (!copy) throw new Error(`The page has no template "${id}"`);
  return copy;
}
