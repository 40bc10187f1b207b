# SPDX-License-Identifier: MIT
# A program of 32 bits, without a C library: some 300 ms of two functions.
	.text
	.globl _start
_start:
	movl $120, %esi
1:	call outer
	decl %esi
	jnz 1b
	movl $1, %eax
	xorl %ebx, %ebx
	int $0x80
	.type outer, @function
outer:
	pushl %ebp
	movl %esp, %ebp
	call inner
	popl %ebp
	ret
	.size outer, . - outer
	.type inner, @function
inner:
	movl $5000000, %ecx
1:	decl %ecx
	jnz 1b
	ret
	.size inner, . - inner
	.section .note.GNU-stack, "", @progbits
