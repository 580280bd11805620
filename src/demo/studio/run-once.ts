/** Runs what a button does, not twice at the same time. */

/**
 * `disabled` would take the keyboard focus from the button.
 *
 * @param action must not reject
 */
export async function runOnce(button: HTMLElement, action: () => Promise<void>): Promise<void> {
  if (button.hasAttribute('aria-disabled')) return;
  button.setAttribute('aria-disabled', 'true');
  await action();
  button.removeAttribute('aria-disabled');
}
