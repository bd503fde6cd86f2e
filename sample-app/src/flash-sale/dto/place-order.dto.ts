import { IsString, Length, Matches } from 'class-validator';

/** Body of `POST /flash-sale/:sku/orders`. */
export class PlaceOrderDto {
  @IsString()
  @Length(1, 64)
  @Matches(/^[\w.-]+$/, { message: 'userId may contain letters, digits, dot, dash and underscore' })
  userId!: string;
}
