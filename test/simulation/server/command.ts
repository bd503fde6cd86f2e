import type { RespValue } from './resp.js';

/** The words of a command, its name in small letters. */
export type Command = readonly (string | number)[];

/** One value that the server sends in reply to a command. */
export type Reply = RespValue;
