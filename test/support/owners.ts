/** The process that an owner of a lock belongs to, by its name; whoever asks for a fair lock has an owner of its own kind. */
export const processOfOwner = (owner: string): string => owner.replace(/(:fair)?:\d+$/, '');
